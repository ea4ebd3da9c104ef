"""Code that several methods share, or that would make a method's own file too long. No method is
registered here.
"""
