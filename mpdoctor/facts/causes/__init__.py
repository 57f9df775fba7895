"""Why steps failed, moved nothing or ran away: what was measured of it."""
