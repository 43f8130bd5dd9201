"""Where results may lie besides a folder: a branch of a git repository, or whatever fsspec reaches, such as a bucket.

A location is read through a mirror of it in the user's cache, and added to by ``groundspeed store push``. Records are
never rewritten there, so that any number of runners may push at once.
"""
