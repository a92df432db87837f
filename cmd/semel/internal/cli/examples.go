package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are what the help of each command shows, by the command's path.
var examples = map[string][]string{
	"semel": {
		"semel run --config semel.yaml",
		"semel messages summary --config semel.yaml",
		"semel demo",
	},
	"semel check": {
		"semel check --config semel.yaml",
		"semel check --consumer billing --json",
		"semel check --explain 13",
	},
	"semel why": {
		"semel why order-17 --config semel.yaml",
		"semel why order-17 --consumer billing --json",
		"semel why order-17 --store postgres://db/shop --consumer billing",
	},
	"semel run": {
		"semel run --config semel.yaml",
		"semel run --config semel.yaml --consumer billing --exit-when-idle 10s",
		"semel run --config semel.yaml --from-start",
		"semel run --config semel.yaml --json 2>semel.log",
	},
	"semel health": {
		"semel health --config semel.yaml",
		"semel health --config semel.yaml --live --timeout 500ms",
	},
	"semel record": {
		"semel record --config semel.yaml",
		"semel record --config semel.yaml --timeout 30s --json",
	},
	"semel top": {
		"semel top --config semel.yaml",
		"semel top --store postgres://db/shop --every 5s",
		"semel top --config semel.yaml --once --json",
	},
	"semel demo": {
		"semel demo",
		"semel demo --seed 7 --keep kept",
		"semel demo --source",
	},
	"semel migrate": {
		"semel migrate up --config semel.yaml",
		"semel migrate status --config semel.yaml",
	},
	"semel migrate up":     {"semel migrate up --config semel.yaml"},
	"semel migrate status": {"semel migrate status --config semel.yaml --json"},
	"semel migrate print":  {"semel migrate print --config semel.yaml >semel.sql"},
	"semel migrate grants": {"semel migrate grants --config semel.yaml --role worker"},
	"semel migrate seed": {
		"semel migrate seed --consumer billing --from processed --id message_id",
		"semel migrate seed --consumer billing --from public.done --id id --where 'ok'",
	},
	"semel messages": {
		"semel messages summary --config semel.yaml",
		"semel messages show --config semel.yaml 17 --payload",
		"semel messages retry --config semel.yaml 17 --because 'account opened'",
	},
	"semel messages summary": {
		"semel messages summary --config semel.yaml",
		"semel messages summary --by state --consumer billing",
	},
	"semel messages ls": {
		"semel messages ls --group 8e9d35a7 -o wide",
		"semel messages ls --state waiting,running --consumer search",
	},
	"semel messages show": {
		"semel messages show --config semel.yaml 17 --payload",
		"semel messages show 8e9d35a7",
		"semel messages show payments-dead/0/17 --consumer billing --payload",
	},
	"semel messages retry": {
		"semel messages retry --all --group 8e9d35a7 --dry-run",
		"semel messages retry 17 18 --run --because 'account opened'",
	},
	"semel messages edit": {
		"semel messages edit 17 --payload fixed.json --dry-run",
		"semel messages edit 17 --payload fixed.json --yes --because 'wrong account'",
	},
	"semel messages discard": {
		"semel messages discard 17 18 --because 'test data of 3 May'",
		"semel messages discard --all --reason conflict --because 'agreed with shop'",
	},
	"semel messages reopen":  {"semel messages reopen 17 --because 'it was closed by mistake'"},
	"semel messages resolve": {"semel messages resolve 17 --outcome not-done --because 'no such charge'"},
	"semel messages skip":    {"semel messages skip --config semel.yaml 17 --because 'the key may go on'"},
	"semel messages release": {"semel messages release --config semel.yaml 17 --because 'its host is gone'"},
	"semel intents": {
		"semel intents ls --config semel.yaml",
		"semel intents show --config semel.yaml 17 --payload",
		"semel intents retry --config semel.yaml 17 --because 'the address is right'",
	},
	"semel intents ls": {
		"semel intents ls --config semel.yaml --consumer mailer",
		"semel intents ls --store postgres://db/shop --consumer mailer",
	},
	"semel intents show":     {"semel intents show --config semel.yaml 17 --payload"},
	"semel intents retry":    {"semel intents retry --all --reason suppressed --because 'checked'"},
	"semel intents suppress": {"semel intents suppress --all --consumer mailer --because 'test data'"},
	"semel intents resolve":  {"semel intents resolve --config semel.yaml 17 --outcome sent --because 'paid'"},
	"semel intents release":  {"semel intents release --config semel.yaml 17 --because 'its host is gone'"},
	"semel intents discard":  {"semel intents discard --config semel.yaml 17 --because 'test data'"},
	"semel reap": {
		"semel reap --once --config semel.yaml",
		"semel reap --dry-run --store postgres://db/shop",
		"semel reap status --config semel.yaml",
	},
	"semel reap status": {"semel reap status --config semel.yaml --json"},
	"semel reap forget": {"semel reap forget --consumer billing --lane payments/7 --because 'it is gone'"},
	"semel reap move": {
		"semel reap move --consumer payments --because 'the table is large'",
		"semel reap move --consumer payments --end --because 'all processes are new'",
	},
	"semel reap print": {"semel reap print --config semel.yaml >reaper.sql"},
	"semel pause": {
		"semel pause --config semel.yaml --because 'the disk is full'",
		"semel pause --store postgres://db/shop --consumer billing --because moved",
	},
	"semel resume": {"semel resume --config semel.yaml --consumer billing --because 'there is room'"},
	"semel limit": {
		"semel limit 50 --config semel.yaml --because 'the database recovers'",
		"semel limit off --config semel.yaml --because 'it has recovered'",
	},
	"semel controls": {
		"semel controls --config semel.yaml",
		"semel controls --store postgres://db/shop --json",
	},
	"semel identity": {
		"semel identity ls --config semel.yaml",
		"semel identity retire billing --generation 0 --because 'deployed in May'",
	},
	"semel identity ls": {"semel identity ls --config semel.yaml --json"},
	"semel identity retire": {
		"semel identity retire billing --generation 0 --because 'deployed in May'",
		"semel identity retire billing --generation 0 --dry-run",
		"semel identity retire billing --generation 0 --undo --because 'too early'",
	},
	"semel identity release": {
		"semel identity release billing --because 'invoices took it over'",
	},
	"semel gaps": {
		"semel gaps ls --config semel.yaml",
		"semel gaps show --config semel.yaml --stream order-7",
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
	"semel gaps backfill": {
		"semel gaps backfill --consumer history --file lost.jsonl --because found",
		"semel gaps backfill --consumer history --file - --format json --because sent",
	},
	"semel replay": {
		"semel replay plan --consumer billing",
		"semel replay start --consumer billing --because 'markers were lost'",
		"semel replay status --config semel.yaml",
	},
	"semel replay plan": {
		"semel replay plan --consumer billing",
		"semel replay plan --consumer billing --from 2026-01-03 --to 24h --json",
		"semel replay plan --consumer billing --from orders/0=1200,orders/1=80",
	},
	"semel replay start": {
		"semel replay start --consumer billing --because 'markers were lost'",
		"semel replay start --consumer billing --resume 3 --because 'it was killed'",
		"semel replay start --rebuild --consumer billing --because 'a new column'",
	},
	"semel replay switch": {
		"semel replay switch 4 --consumer billing --dry-run",
		"semel replay switch 4 --consumer billing --because 'a new column'",
	},
	"semel replay drop":   {"semel replay drop 4 --consumer billing --because 'all is well'"},
	"semel replay status": {"semel replay status --consumer billing -o wide"},
	"semel replay stop":   {"semel replay stop 3 --because 'the shop is slow'"},
	"semel erase":         {"semel erase --id order-7 --because 'ticket 4711' --dry-run"},
	"semel reconcile": {
		"semel reconcile --consumer billing --file sent.jsonl",
		"semel reconcile --consumer billing --file - --effects 'select id from paid'",
		"semel reconcile --consumer billing --file sent.jsonl --grace 10m --json",
		"semel reconcile --consumer billing --topic payments --from 24h --to 1h",
		"semel reconcile --consumer billing --sql 'select id from outbox where sent'",
	},
	"semel positions": {
		"semel positions plan --config semel.yaml",
		"semel positions reset --config semel.yaml --dry-run",
	},
	"semel positions plan": {"semel positions plan --config semel.yaml --consumer billing -o wide"},
	"semel positions reset": {
		"semel positions reset --config semel.yaml --dry-run",
		"semel positions reset --consumer billing --because 'backup of 03:00 restored'",
		"semel positions reset --log-start --because 'the rest is gone'",
	},
	"semel positions accept": {"semel positions accept --consumer billing --because 'effects were imported'"},
	"semel audit": {
		"semel audit ls --config semel.yaml --limit 20",
		"semel audit verify --config semel.yaml",
	},
	"semel audit ls": {
		"semel audit ls --config semel.yaml --limit 20",
		"semel audit ls --verb discard --who ana --since 2026-05-01 -o wide",
		"semel audit ls --row 17 --json",
	},
	"semel audit verify": {
		"semel audit verify --config semel.yaml",
		"semel audit verify --store shop --head-file last.head --json",
		"semel audit verify --file acts.jsonl --key-file audit.key",
	},
	"semel audit export": {"semel audit export --config semel.yaml >acts.jsonl"},
	"semel audit seal":   {"semel audit seal --config semel.yaml", "semel audit seal --config semel.yaml --begin"},
	"semel alerts":       {"semel alerts --config semel.yaml >alerts.yaml"},
	"semel schema":       {"semel schema >semel.schema.json"},
	"semel version":      {"semel version", "semel version --json"},
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
