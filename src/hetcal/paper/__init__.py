"""The published experiments: what is run, where results are kept, tables and figures of them.

Nobody imports this package: ``hetcal paper`` finds `commands` by an entry point, and the rest of
hetcal runs without it. Read from the bottom: `settings` says what a trial is and names its result,
`data` and `methods` compute one, `store` keeps it, `runner` runs many; `tables` and `hindsight`
summarise results, `figures` draws them, `plan` lists everything the paper needs, `published` holds
what it printed, `claims` checks what it says, `page` writes the documentation's page of results.
"""
