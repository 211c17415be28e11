"""What stands between the network and the routes: header and host checks, sizes and times."""
