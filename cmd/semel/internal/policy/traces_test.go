package policy

import "testing"

// withTraces returns the edits that set the key "traces" in the policy base.
func withTraces(value string) []string {
	return []string{"version: 1\n", "version: 1\ntraces: " + value + "\n"}
}

func refusedTraces() []policyCase {
	return []policyCase{
		{name: "traces to nowhere", edits: withTraces("{ratio: 0.1}"), shape: true},
		{name: "traces to a file", edits: withTraces("{otlp: spans.json}")},
		{name: "traces to no host", edits: withTraces(`{otlp: "http://:4318"}`)},
		{name: "traces to a port of nobody", edits: withTraces(`{otlp: "http://127.0.0.1:99999"}`)},
		{name: "traces with a password in the address", edits: withTraces(`{otlp: "http://ana:secret@127.0.0.1:4318"}`)},
		{name: "traces with a query", edits: withTraces(`{otlp: "http://127.0.0.1:4318/?token=secret"}`)},
		{name: "more than all traces", edits: withTraces(`{otlp: "http://127.0.0.1:4318", ratio: 1.5}`), shape: true},
		{name: "no trace at all", edits: withTraces(`{otlp: "http://127.0.0.1:4318", ratio: 0}`), shape: true},
		{name: "a share that is a text", edits: withTraces(`{otlp: "http://127.0.0.1:4318", ratio: "0.5"}`)},
		{name: "a share that is no number", edits: withTraces(`{otlp: "http://127.0.0.1:4318", ratio: .nan}`)},
	}
}

func acceptedTraces() []policyCase {
	return []policyCase{
		{name: "traces to a collector", edits: withTraces(`{otlp: "http://127.0.0.1:4318"}`)},
		{name: "some traces to a collector elsewhere", edits: withTraces(`{otlp: "https://traces.example/otlp/v1/traces", ratio: 0.05}`)},
		{name: "all traces", edits: withTraces(`{otlp: "http://[::1]:4318/", ratio: 1}`)},
	}
}

func TestTheAddressOfTracesIsWhole(t *testing.T) {
	t.Run("C14_without_a_path_it_is_that_of_the_protocol", func(t *testing.T) {
		for given, want := range map[string]string{
			"http://127.0.0.1:4318": "http://127.0.0.1:4318/v1/traces", "http://127.0.0.1:4318/": "http://127.0.0.1:4318/v1/traces",
			"https://traces.example/otlp": "https://traces.example/otlp",
		} {
			if got := (Traces{OTLP: given}).Endpoint(); got != want {
				t.Errorf("%s is %s, not %s", given, got, want)
			}
		}
	})
}
