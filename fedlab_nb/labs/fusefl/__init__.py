"""FuseFL's classroom.

lab, lab_study: the panel's views;   plots: their pictures
lesson: the worked numbers of lesson 06;   exercises: its exercises (1: traffic, 2: the two halves, 3: spurious cues)
run, traffic, probes, two_cues: the numbers that views and lesson share
"""
