"""The task NLVR2: is a statement true of two photographs?"""
