"""Result quality of minwise and the peers, compared with labels or an exact join."""
