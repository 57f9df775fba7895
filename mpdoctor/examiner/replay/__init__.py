"""A step repeated with everything observed: what broke in it, and what the loss scale did."""
