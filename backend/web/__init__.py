"""What lies between the network and the routes: limits, guards, one error shape, monitoring."""
