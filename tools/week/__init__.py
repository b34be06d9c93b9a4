"""A week of three people with mmgen, in an hour: what a researcher, an engineer and an author of plugins do, with the
commands and the code of the documentation, at tiny sizes.

    python -m tools.week                       every job, in a temporary folder
    python -m tools.week --folder week         the same in a folder that stays; jobs that were done are not done again
    python -m tools.week --person engineer     the jobs of one person, after those they build on
    python -m tools.week --list                the jobs, without doing them

A job is a list of steps: commands, Python code and files. A step that names a page of the documentation is there, word
for word (a test compares them); a step without a page is one that the pages leave to the reader. The table has the
seconds of each job, and its detours: what stood in the way of the first who did it with the pages alone (a sentence
that was not true, a command that was missing, an error that did not help); each has been mended. Nothing is downloaded,
and nothing is installed outside the folder.
"""
