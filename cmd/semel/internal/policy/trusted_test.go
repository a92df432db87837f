package policy

import "testing"

func TestAnIdentityWhoseNameSaysThatItIsNone(t *testing.T) {
	t.Run("A3_passes_only_where_the_policy_trusts_it", func(t *testing.T) {
		for id, fits := range map[string]bool{"header:ce-id": true, "header:x-b3-TraceId": false, "header:JMSTimestamp": false, "header:delivery-tag?": false, "body:/id": true} {
			if _, why := (Identity{ID: []string{id}}).selectedIdentity().Unfit(); (why == "") != fits {
				t.Errorf("%s: %q", id, why)
			}
			if _, why := (Identity{ID: []string{id}, Trusted: true}).selectedIdentity().Unfit(); why != "" {
				t.Errorf("%s, trusted: %q", id, why)
			}
		}
	})
}
