"""hetcal where other tools look; each module needs its tool, and none is loaded by itself."""
