"""The options of commands: what they take, how it is refused, completed and explained."""
