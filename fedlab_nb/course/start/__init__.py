"""Lesson 1: the first question, and the playground."""
