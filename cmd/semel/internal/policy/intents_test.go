package policy

import (
	"strings"
	"testing"
)

// intentPolicy is a policy whose handlers by type write the given intents.
func intentPolicy(intents ...string) string {
	types := ""
	for i, n := range intents {
		types += "        " + string(rune('a'+i)) + ": {sql: {params: {account: \"body:/account\"}, statements: [insert into a values (:account)], intents: [" + n + "]}}\n"
	}
	before, _, _ := strings.Cut(base, "      sql:\n")
	return before + "      types:\n" + types + `  mailer:
    store: shop
    strategy: lease
    alerts: {pending_age: 1m}
    handler: {http: {url: "https://mail.example/send"}}
`
}

func TestIntentsAreToldApart(t *testing.T) {
	mail := func(more string) string { return "{to: mailer, purpose: note" + more + "}" }
	for name, c := range map[string]struct {
		intents []string
		refused string
	}{
		"E1_by_their_recipients":   {[]string{mail(`, recipient: "body:/from"`) + ", " + mail(`, recipient: "body:/to"`)}, ""},
		"E1_by_their_purposes":     {[]string{mail("") + ", {to: mailer, purpose: receipt}"}, ""},
		"E1_by_their_types":        {[]string{mail(""), mail("")}, ""},
		"E1_and_not_by_their_type": {[]string{mail(", type: a") + ", " + mail(", type: b")}, `types["a"].sql.intents[1].purpose: another intent of this handler has the same purpose and recipient`},
		"E1_a_sender_is_there":     {[]string{"{to: mailr, purpose: note}"}, `types["a"].sql.intents[0].to: there is no consumer "mailr"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := Parse("semel.yaml", []byte(intentPolicy(c.intents...)), environment)
			if c.refused == "" && len(faults) > 0 || c.refused != "" && (len(faults) != 1 || !strings.Contains(faults[0].Error(), c.refused)) {
				t.Errorf("it says %s", faultLines(faults))
			}
		})
	}
}
