"""The paper's experiments: what is run, where results are kept, tables and figures of them.

Read from the bottom: `settings` says what a trial is and names its result, `data` and `methods`
compute one, `store` keeps it, `runner` runs many; `tables` and `contest` summarise results, `plan`
lists everything the paper needs, `published` holds what it printed.
"""
