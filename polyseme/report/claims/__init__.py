"""The eleven claims that the report tests, one file each: the claim's wording, measurements, pass rule and verdict.

``claim_04_syntax_and_meaning.py`` is claim 4 of the page and of ``polyseme report --only 4``; ``listing.py`` has all.
"""
