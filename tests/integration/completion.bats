#!/usr/bin/env bats
# bash completion, as bash calls it. Needs no root: labs are asked of the machine, so only what
# comes from the program and from files is held to exact words here.

setup()
{
	. "$DSF_SOURCE/completion/dsfemu"
	cd "$DSF_SOURCE" || return 1
}

# complete_words WORD... : the last one is being written; the replies, sorted, on one line
complete_words()
{
	COMP_WORDS=("$DSFEMU" "$@")
	COMP_CWORD=$#
	COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
	_dsfemu
	printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' '
}

@test "every command of help is offered" {
	run complete_words ""
	[ "$status" = 0 ]
	for command in $("$DSFEMU" help | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) .*/\1/p'); do
		[[ " $output" == *" $command "* ]]
	done
	[[ " $output" == *" validate "* ]]
}

@test "a command is completed" {
	[ "$(complete_words vali)" = "validate " ]
}

@test "options come from the command's help" {
	run complete_words validate --
	[[ " $output" == *" --json "* ]]
	[[ " $output" == *" --help "* ]]
}

@test "an unknown command offers nothing" {
	[ "$(complete_words nonsense "")" = " " ]
}

@test "topology files and folders" {
	[ "$(complete_words validate topologies/min)" = "topologies/mini.json " ]
	[[ "$(complete_words validate topolog)" == "topologies/ " ]]
}

@test "words of words" {
	[ "$(complete_words link im)" = "impair " ]
	[ "$(complete_words link fl)" = "flap " ]
	[ "$(complete_words node fr)" = "freeze " ]
	[ "$(complete_words chaos drills/gray)" = "drills/gray-loss.json " ]
	[ "$(complete_words sim topologies/mini.json --drill ran)" = "random " ]
	[ "$(complete_words show fabric in)" = "inputbalance " ]
	[ "$(complete_words run per)" = "permutation " ]
}

@test "an option's argument is no word of the command" {
	[ "$(complete_words --lab nolab validate topologies/min)" = "topologies/mini.json " ]
	[ "$(complete_words validate --lab = nolab topologies/min)" = "topologies/mini.json " ]
}

@test "links of the file on the line, behind the colon" {
	[ "$(complete_words sim topologies/mini.json --fail b0-z0-p0-rdsw0 : fab)" = "fab0 fab1 " ]
}

@test "behind -- stands another command" {
	[[ " $(complete_words exec somenode -- bas)" == *" bash "* ]]
}
