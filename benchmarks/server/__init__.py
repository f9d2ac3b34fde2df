"""How many requests a second the service answers, and how long they wait, under a load by wrk on the same machine."""
