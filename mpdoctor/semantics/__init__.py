"""What facts mean for precision. Rules import these modules; none of these imports a rule."""
