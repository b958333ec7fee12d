"""`make proof`: suites of long tests, a ledger of their runs in docs/proof.json, and the pages made from it."""
