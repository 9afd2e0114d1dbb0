# What the RFCs ask of a BGP speaker, judged on its sockets: our core passes every case, and the
# scores of FRR, BIRD and GoBGP are printed beside it (CONFORM_SCORES: a folder that gets them as
# JSON, case by case).

load lib
load conform

teardown()
{
	net_down
}

# The others are judged by the same program; what they fail at is theirs.
scores_of() # TARGET
{
	conform_up "$1"
	conform_run "$1" limit=5000 >"$DIR/report" || true
	grep -A1 '^not ok' "$DIR/report" | sed 's/^#* */# /' >&3 || true
	tail -n 1 "$DIR/report" >&3
	[ -z "${CONFORM_SCORES:-}" ] || cp "$DIR/scores" "$CONFORM_SCORES/$1.json"
	[ "$(jq '.passed + .failed + .not_applicable' "$DIR/scores")" = "$(jq '.cases | length' "$DIR/scores")" ]
}

@test "our core does what the RFCs say, in every case" {
	need jq
	conform_up us
	conform_run us >"$DIR/report" || { cat "$DIR/report"; false; }
	tail -n 1 "$DIR/report" >&3
	[ "$(jq .passed "$DIR/scores")" -ge 60 ]
	[ "$(jq .not_applicable "$DIR/scores")" = 0 ]
}

@test "FRR, by the same cases" {
	need frr jq
	scores_of frr
}

@test "BIRD, by the same cases" {
	need bird jq
	scores_of bird
}

@test "GoBGP, by the same cases" {
	need gobgpd jq
	scores_of gobgp
}
