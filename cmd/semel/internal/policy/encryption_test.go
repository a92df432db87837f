package policy

import "testing"

// withEncryption returns the edits that add an encryption key to the store in the policy base.
func withEncryption(line string) []string {
	return []string{"sqlite: {path: shop.db}", "sqlite: {path: shop.db}\n    encryption: " + line}
}

func acceptedEncryption() []policyCase {
	return []policyCase{
		{name: "encryption", edits: withEncryption(`{key: "${KEY}"}`)},
		{name: "encryption after a change of the key", edits: withEncryption(`{key: "${KEY}", previous_keys: ["${OTHER_KEY}"]}`)},
		{name: "encryption with one former key", edits: withEncryption(`{key: "${KEY}", previous_keys: "${OTHER_KEY}"}`)},
		{name: "encryption that is required since a date", edits: withEncryption(`{key: "${KEY}", required_since: "2026-07-01"}`)},
		{name: "encryption that is required since a time", edits: withEncryption(`{key: "${KEY}", required_since: "2026-07-01T12:00:00+02:00"}`)},
	}
}

func refusedEncryption() []policyCase {
	return []policyCase{
		{name: "encryption without a key", edits: withEncryption(`{previous_keys: "${KEY}"}`), shape: true},
		{name: "a key of encryption in the file", edits: withEncryption(`{key: aHVudGVyMg==}`), shape: true},
		{name: "a key of encryption that is no base64", edits: withEncryption(`{key: "${SECRET}"}`)},
		{name: "a key of encryption that is short", edits: withEncryption(`{key: "${SHORT_KEY}", previous_keys: "${SHORT_KEY}"}`)},
		{name: "encryption that is required since no time", edits: withEncryption(`{key: "${KEY}", required_since: always}`), shape: true},
		{name: "encryption that is required since the zero time", edits: withEncryption(`{key: "${KEY}", required_since: "0001-01-01"}`)},
		{name: "encryption of Redis", edits: []string{"sqlite: {path: shop.db}", "redis: {addresses: \"127.0.0.1:6379\"}\n    encryption: {key: \"${KEY}\"}"}},
	}
}

func TestKeysOfEncryptionAreRead(t *testing.T) {
	p, faults := parse(policyCase{edits: withEncryption(`{key: "${KEY}", previous_keys: ["${OTHER_KEY}"]}`)})
	if len(faults) > 0 || p.Store("shop").Encryption == nil || len(p.Store("shop").Encryption.Key) != 32 || len(p.Store("shop").Encryption.PreviousKeys) != 1 {
		t.Errorf("%+v, %v", p, faults)
	}
}
