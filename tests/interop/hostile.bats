# Neighbours that mean harm, on real sockets: our core lives, others' routes are left alone, and its
# memory is what it was when they are gone.

load lib
load conform

teardown()
{
	net_down
}

@test "floods, neighbours that don't read, that drip, and connections by the thousand" {
	need jq
	conform_up us
	local before pid
	until_is true state '.memory > 0'
	before=$(state .memory)
	pid=$(head -n 1 "$DIR/pids")
	conform_run us cases=hostile >"$DIR/report" || { cat "$DIR/report"; false; }
	[ "$(jq .passed "$DIR/scores")" = 6 ]
	kill -0 "$pid"
	until_is "$before" state .memory
}
