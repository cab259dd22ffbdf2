"""The rules of Le Truc: rule sets, cards, the referee, notation and the match; nothing here solves anything."""
