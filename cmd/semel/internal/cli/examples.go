package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are what the help of each command shows, by the command's path.
var examples = map[string][]string{
	"semel": {
		"semel run",
		"semel parked summary",
		"semel demo",
	},
	"semel audit": {
		"semel audit ls --limit 20",
		"semel audit verify",
	},
	"semel audit export": {"semel audit export >acts.jsonl"},
	"semel audit ls": {
		"semel audit ls --limit 20",
		"semel audit ls --verb discard --who ana --since 2026-05-01 -o wide",
		"semel audit ls --row 17 --json",
	},
	"semel audit seal": {
		"semel audit seal",
		"semel audit seal --begin",
	},
	"semel audit verify": {
		"semel audit verify",
		"semel audit verify --store shop --head-file last.head --json",
		"semel audit verify --file acts.jsonl --key-file audit.key",
	},
	"semel check": {
		"semel check",
		"semel check --consumer billing --json",
		"semel check --explain 13",
	},
	"semel consumers": {
		"semel consumers ls",
		"semel consumers pause billing --because 'the disk is full'",
		"semel consumers resume billing --because 'there is room'",
	},
	"semel consumers identity": {
		"semel consumers identity ls",
		"semel consumers identity retire billing --generation 0 --because 'long ago'",
	},
	"semel consumers identity ls":      {"semel consumers identity ls --json"},
	"semel consumers identity release": {"semel consumers identity release billing --because 'invoices took it over'"},
	"semel consumers identity retire": {
		"semel consumers identity retire billing --generation 0 --dry-run",
		"semel consumers identity retire billing --generation 0 --because 'long ago'",
		"semel consumers identity retire billing --generation 0 --undo --because oops",
	},
	"semel consumers limit": {
		"semel consumers limit billing 50 --because 'the database recovers'",
		"semel consumers limit billing off --because 'it has recovered'",
	},
	"semel consumers ls": {
		"semel consumers ls",
		"semel consumers ls --store postgres://db/shop --json",
	},
	"semel consumers pause": {
		"semel consumers pause billing search --because 'the disk is full'",
		"semel consumers pause --all --dry-run",
	},
	"semel consumers positions": {
		"semel consumers positions plan",
		"semel consumers positions reset --all --dry-run",
	},
	"semel consumers positions accept": {"semel consumers positions accept billing --because 'imported'"},
	"semel consumers positions plan":   {"semel consumers positions plan billing -o wide"},
	"semel consumers positions reset": {
		"semel consumers positions reset --all --dry-run",
		"semel consumers positions reset billing --because 'backup restored'",
	},
	"semel consumers record": {
		"semel consumers record",
		"semel consumers record --timeout 30s --json",
	},
	"semel consumers resume": {"semel consumers resume billing --because 'there is room'"},
	"semel dead": {
		"semel dead ls --config semel.yaml",
		"semel dead replay --all --group 8e9d35a7 --dry-run",
		"semel dead replay --all --group 8e9d35a7 --because 'account opened'",
	},
	"semel dead discard": {"semel dead discard 17 --because 'never valid'"},
	"semel dead edit": {
		"semel dead edit 17 --payload fixed.json --dry-run",
		"semel dead edit 17 --payload fixed.json --yes --because 'wrong account'",
	},
	"semel dead ls": {
		"semel dead ls --config semel.yaml",
		"semel dead ls --group 8e9d35a7",
		"semel dead ls --store postgres://db/shop --consumer billing",
	},
	"semel dead replay": {
		"semel dead replay --all --group 8e9d35a7 --dry-run",
		"semel dead replay --all --group 8e9d35a7 --rate 50 --because 'mended'",
		"semel dead replay 17 18 --run --because 'account opened'",
	},
	"semel dead show": {
		"semel dead show --config semel.yaml 17 --payload",
		"semel dead show 8e9d35a7",
		"semel dead show payments-dead/0/17 --consumer billing --payload",
	},
	"semel demo": {
		"semel demo",
		"semel demo --seed 7 --keep kept",
		"semel demo --source",
	},
	"semel erase": {
		"semel erase --id order-7 --because 'ticket 4711' --dry-run",
		"semel erase --header customer=c-17 --discard --because 'ticket 4711'",
		"semel erase --store sqlite:shop.db --ids ids.txt --vacuum --because 'a list'",
	},
	"semel gaps": {
		"semel gaps ls --config semel.yaml",
		"semel gaps show --config semel.yaml --stream order-7",
	},
	"semel gaps backfill": {
		"semel gaps backfill --consumer history --file lost.jsonl --because found",
		"semel gaps backfill --consumer history --file - --format json --because sent",
	},
	"semel gaps ls": {
		"semel gaps ls --config semel.yaml --consumer history",
		"semel gaps ls --store postgres://db/shop --limit 20 -o wide",
	},
	"semel gaps show": {"semel gaps show --config semel.yaml --stream order-7 --json"},
	"semel gaps skip": {
		"semel gaps skip --config semel.yaml --stream order-7 --dry-run",
		"semel gaps skip --stream order-7 --to 4 --because 'never sent, says shop'",
		"semel gaps skip --all --consumer history --because 'the topic was cut'",
	},
	"semel generate": {
		"semel generate alerts >alerts.yaml",
		"semel generate schema >semel.schema.json",
	},
	"semel generate alerts": {"semel generate alerts >alerts.yaml"},
	"semel generate schema": {"semel generate schema >semel.schema.json"},
	"semel health": {
		"semel health",
		"semel health --live --timeout 500ms",
	},
	"semel inbox": {
		"semel inbox stats --config semel.yaml",
		"semel inbox ls --config semel.yaml",
		"semel inbox stats --store postgres://db/shop --consumer billing",
	},
	"semel inbox discard": {"semel inbox discard --config semel.yaml 17 --because 'test data'"},
	"semel inbox ls": {
		"semel inbox ls --config semel.yaml --consumer search",
		"semel inbox ls --config semel.yaml --state IN_PROGRESS -o wide",
	},
	"semel inbox release": {"semel inbox release --config semel.yaml 17 --because 'its host is gone'"},
	"semel inbox resolve": {"semel inbox resolve --config semel.yaml 17 --outcome done --because 'paid'"},
	"semel inbox retry": {
		"semel inbox retry --config semel.yaml --all --because 'the index is back'",
		"semel inbox retry --config semel.yaml 17 --wait --because 'account opened'",
	},
	"semel inbox show":  {"semel inbox show --config semel.yaml 17 --payload"},
	"semel inbox skip":  {"semel inbox skip --config semel.yaml 17 --because 'the key may go on'"},
	"semel inbox stats": {"semel inbox stats --config semel.yaml --json"},
	"semel intents": {
		"semel intents ls --config semel.yaml",
		"semel intents show --config semel.yaml 17 --payload",
		"semel intents send --config semel.yaml 17 --because 'the address is right now'",
	},
	"semel intents ls": {
		"semel intents ls --config semel.yaml --consumer mailer",
		"semel intents ls --store postgres://db/shop --consumer mailer",
	},
	"semel intents resolve":  {"semel intents resolve --config semel.yaml 17 --outcome sent --because 'paid'"},
	"semel intents send":     {"semel intents send --all --reason suppressed --because 'checked'"},
	"semel intents show":     {"semel intents show --config semel.yaml 17 --payload"},
	"semel intents suppress": {"semel intents suppress --all --consumer mailer --because 'test data'"},
	"semel migrate": {
		"semel migrate up",
		"semel migrate status",
	},
	"semel migrate grants": {"semel migrate grants --role worker"},
	"semel migrate print":  {"semel migrate print >semel.sql"},
	"semel migrate seed": {
		"semel migrate seed --consumer billing --from processed --id message_id",
		"semel migrate seed --consumer billing --from public.done --id id --where 'ok'",
	},
	"semel migrate status": {"semel migrate status --json"},
	"semel migrate up":     {"semel migrate up"},
	"semel parked": {
		"semel parked summary --config semel.yaml",
		"semel parked show --config semel.yaml 17 --payload",
		"semel parked retry --config semel.yaml 17 --because 'account opened'",
	},
	"semel parked discard": {
		"semel parked discard --config semel.yaml 17 18 --because 'test data of 3 May'",
		"semel parked discard --all --reason conflict --because 'agreed with shop'",
	},
	"semel parked ls": {
		"semel parked ls --config semel.yaml --limit 20",
		"semel parked ls --config semel.yaml --reason conflict --before 24h -o wide",
		"semel parked ls --config semel.yaml --state DEAD_LETTERED -o json",
	},
	"semel parked reopen":  {"semel parked reopen 17 --because 'it was closed by mistake'"},
	"semel parked resolve": {"semel parked resolve 17 --outcome not-done --because 'it has no such charge'"},
	"semel parked retry": {
		"semel parked retry --config semel.yaml 17 --run --because 'account opened'",
		"semel parked retry --all --reason 'condition unmet' --dry-run",
	},
	"semel parked show": {
		"semel parked show --config semel.yaml 17",
		"semel parked show --config semel.yaml 17 --payload --json",
	},
	"semel parked summary": {
		"semel parked summary --config semel.yaml",
		"semel parked summary --consumer billing --before 2026-05-01",
	},
	"semel rebuild": {
		"semel rebuild start billing --because 'a new column'",
		"semel rebuild status",
		"semel rebuild switch 4 --because 'it is built'",
	},
	"semel rebuild drop": {"semel rebuild drop 4 --because 'all is well'"},
	"semel rebuild start": {
		"semel rebuild start billing --because 'a new column'",
		"semel rebuild start billing --resume 4 --because 'it was killed'",
	},
	"semel rebuild status": {"semel rebuild status --consumer billing -o wide"},
	"semel rebuild stop":   {"semel rebuild stop 4 --because 'the shop is slow'"},
	"semel rebuild switch": {
		"semel rebuild switch 4 --dry-run",
		"semel rebuild switch 4 --because 'a new column'",
	},
	"semel reconcile": {
		"semel reconcile billing --file sent.jsonl",
		"semel reconcile billing --file - --effects 'select id from paid'",
		"semel reconcile billing --topic payments --from 24h --to 1h",
	},
	"semel replay": {
		"semel replay plan billing",
		"semel replay start billing --because 'markers were lost'",
		"semel replay status",
	},
	"semel replay plan": {
		"semel replay plan billing",
		"semel replay plan billing --from 2026-01-03 --to 24h --json",
		"semel replay plan billing --from orders/0=1200,orders/1=80",
	},
	"semel replay start": {
		"semel replay start billing --because 'markers were lost'",
		"semel replay start billing --resume 3 --because 'it was killed'",
	},
	"semel replay status": {"semel replay status --consumer billing -o wide"},
	"semel replay stop":   {"semel replay stop 3 --because 'the shop is slow'"},
	"semel retention": {
		"semel retention status",
		"semel retention run --dry-run",
	},
	"semel retention forget": {"semel retention forget billing --lane payments/7 --because 'it is gone'"},
	"semel retention move": {
		"semel retention move payments --because 'the table is large'",
		"semel retention move payments --end --because 'all processes are new'",
	},
	"semel retention print": {"semel retention print >reaper.sql"},
	"semel retention run": {
		"semel retention run",
		"semel retention run --dry-run --store postgres://db/shop",
	},
	"semel retention status": {"semel retention status --json"},
	"semel run": {
		"semel run",
		"semel run --consumer billing --exit-when-idle 10s",
		"semel run --from-start",
		"semel run --json 2>semel.log",
	},
	"semel status": {
		"semel status",
		"semel status --json",
	},
	"semel top": {
		"semel top",
		"semel top --store postgres://db/shop --every 5s",
		"semel top --once --json",
	},
	"semel version": {
		"semel version",
		"semel version --json",
	},
	"semel why": {
		"semel why order-17",
		"semel why order-17 --consumer billing --json",
		"semel why order-17 --store postgres://db/shop --consumer billing",
	},
}

// addExamples puts the examples into the help of a command and of all below it.
func addExamples(cmd *cobra.Command) {
	if lines := examples[cmd.CommandPath()]; lines != nil {
		cmd.Example = "  " + strings.Join(lines, "\n  ")
	}
	for _, child := range cmd.Commands() {
		addExamples(child)
	}
}
