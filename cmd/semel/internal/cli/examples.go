package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples has the examples in the help of each command, by command path.
var examples = map[string][]string{
	"semel": {
		"semel run",
		"semel status",
		"semel demo",
	},
	"semel audit": {
		"semel audit ls --limit 20",
		"semel audit verify",
	},
	"semel audit export": {"semel audit export >changes.jsonl"},
	"semel audit ls": {
		"semel audit ls --limit 20",
		"semel audit ls --verb discard --who ana --since 2026-05-01 -o wide",
		"semel audit ls --row 17 -o json",
	},
	"semel audit seal": {
		"semel audit seal",
		"semel audit seal --begin",
	},
	"semel audit verify": {
		"semel audit verify",
		"semel audit verify --store shop --head-file last.head -o json",
		"semel audit verify --file changes.jsonl --key-file audit.key",
	},
	"semel check": {
		"semel check",
		"semel check --consumer billing -o json",
		"semel check --explain 13",
		"semel check --prove --messages sample.jsonl --ignore payments.booked_at",
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
	"semel consumers identity ls":      {"semel consumers identity ls -o json"},
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
		"semel consumers ls --store postgres://db/shop -o json",
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
		"semel consumers record --timeout 30s -o json",
	},
	"semel consumers resume": {"semel consumers resume billing --because 'there is room'"},
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
		"semel gaps backfill history --file lost.jsonl --because found",
		"semel gaps backfill history --file - --format json --because sent",
	},
	"semel gaps ls": {
		"semel gaps ls --config semel.yaml --consumer history",
		"semel gaps ls --store postgres://db/shop --limit 20 -o wide",
	},
	"semel gaps show": {"semel gaps show --config semel.yaml --stream order-7 -o json"},
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
	"semel intents": {
		"semel intents ls",
		"semel intents show 17 --payload",
		"semel intents retry 17 --because 'the address is right'",
	},
	"semel intents discard": {"semel intents discard 17 --because 'test data'"},
	"semel intents ls": {
		"semel intents ls --consumer mailer",
		"semel intents ls --store postgres://db/shop --consumer mailer",
	},
	"semel intents release":  {"semel intents release 17 --because 'its host is gone'"},
	"semel intents resolve":  {"semel intents resolve 17 --outcome sent --because 'paid'"},
	"semel intents retry":    {"semel intents retry --all --reason suppressed --because 'checked'"},
	"semel intents show":     {"semel intents show 17 --payload"},
	"semel intents suppress": {"semel intents suppress --all --consumer mailer --because 'test data'"},
	"semel messages": {
		"semel messages summary",
		"semel messages show 17 --payload",
		"semel messages retry 17 --because 'account opened'",
	},
	"semel messages discard": {
		"semel messages discard 17 18 --because 'test data of 3 May'",
		"semel messages discard --all --reason conflict --because 'agreed with shop'",
	},
	"semel messages edit": {
		"semel messages edit 17 --payload fixed.json --dry-run",
		"semel messages edit 17 --payload fixed.json --yes --because 'wrong account'",
	},
	"semel messages ls": {
		"semel messages ls --group 8e9d35a7 -o wide",
		"semel messages ls --state waiting,running --consumer search",
	},
	"semel messages release": {"semel messages release 17 --because 'its host is gone'"},
	"semel messages reopen":  {"semel messages reopen 17 --because 'it was closed by mistake'"},
	"semel messages resolve": {"semel messages resolve 17 --outcome not-done --because 'no such charge'"},
	"semel messages retry": {
		"semel messages retry --all --group 8e9d35a7 --dry-run",
		"semel messages retry 17 18 --run --because 'account opened'",
	},
	"semel messages show": {
		"semel messages show 17 --payload",
		"semel messages show 8e9d35a7",
		"semel messages show payments-dead/0/17 --consumer billing --payload",
	},
	"semel messages skip": {"semel messages skip 17 --because 'the key may go on'"},
	"semel messages summary": {
		"semel messages summary",
		"semel messages summary --by state --consumer billing",
	},
	"semel migrate": {
		"semel migrate up",
		"semel migrate status",
	},
	"semel migrate grants": {"semel migrate grants --role worker"},
	"semel migrate print":  {"semel migrate print >semel.sql"},
	"semel migrate seed": {
		"semel migrate seed billing --from processed --id message_id",
		"semel migrate seed billing --from public.done --id id --where 'ok'",
	},
	"semel migrate status": {"semel migrate status -o json"},
	"semel migrate up":     {"semel migrate up"},
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
		"semel replay plan billing --from 2026-01-03 --to 24h -o json",
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
	"semel retention status": {"semel retention status -o json"},
	"semel run": {
		"semel run",
		"semel run --consumer billing --exit-when-idle 10s",
		"semel run --from-start",
		"semel run -o json 2>semel.log",
	},
	"semel status": {
		"semel status",
		"semel status -o json",
	},
	"semel top": {
		"semel top",
		"semel top --store postgres://db/shop --every 5s",
		"semel top --once -o json",
	},
	"semel version": {
		"semel version",
		"semel version -o json",
	},
	"semel why": {
		"semel why order-17",
		"semel why order-17 --consumer billing -o json",
		"semel why order-17 --store postgres://db/shop --consumer billing",
	},
}

// addExamples adds the examples to the help of a command and of all its subcommands.
func addExamples(cmd *cobra.Command) {
	if lines := examples[cmd.CommandPath()]; lines != nil {
		cmd.Example = "  " + strings.Join(lines, "\n  ")
	}
	for _, child := range cmd.Commands() {
		addExamples(child)
	}
}
