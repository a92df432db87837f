package policy

import (
	"reflect"
	"testing"
)

func TestTheEnvironmentIsReadInEveryValue(t *testing.T) {
	t.Run("K2_the_default_of_each_key_of_a_consumer_may_come_from_the_environment", func(t *testing.T) {
		for _, key := range consumerShape().Keys() {
			if key.Def == "" || key.Later {
				continue
			}
			with := func(value string) policyCase {
				return policyCase{edits: append(inConsumer(key.Name+": "+value), "    strategy: marker\n", "")}
			}
			want, said := parse(with(key.Def))
			got, faults := parse(with(`"${NONE:-` + key.Def + `}"`))
			if faultLines(said) != faultLines(faults) || !reflect.DeepEqual(want, got) {
				t.Errorf("%s is read otherwise: %s", key.Name, faultLines(faults))
			}
		}
	})
	t.Run("K2_a_fingerprint_may_come_from_the_environment", func(t *testing.T) {
		for text, want := range map[string]Fingerprint{
			"body": {}, "none": {None: true}, "body:/amount": {Selectors: []string{"body:/amount"}},
		} {
			p, faults := parse(policyCase{edits: inConsumer(`fingerprint: "${NONE:-` + text + `}"`)})
			if p == nil || len(p.Consumers) != 1 || !reflect.DeepEqual(p.Consumers[0].Fingerprint, want) {
				t.Errorf("%s: %s", text, faultLines(faults))
			}
		}
	})
}
