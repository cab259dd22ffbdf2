"""The explorer: a local page on which the solved game is walked, played and learnt (`truc explore`).

`server` runs it, `guard` decides who may talk to it, `shell` is the page with its six tabs.  What a tab shows is made
by functions from data to HTML (`drawing`, `html` and one module for each tab), which need no browser; NiceGUI carries
it to the page and the clicks back.  Only what runs the server imports NiceGUI (extra `web`).
"""
