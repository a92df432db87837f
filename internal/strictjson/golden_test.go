package strictjson

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Stored fingerprints of version 1 are hashes of the canonical form. The expected hashes were computed before the first
// change of the parser. If a hash differed, every redelivery after an upgrade of Semel would become a conflict.
func TestTheCanonicalFormNeverChanges(t *testing.T) {
	sums := map[string]string{
		"payment": canonicalSum(t, body()),
		"webhook": canonicalSum(t, webhook),
		"values":  sumOfValues(t),
		"numbers": sumOfNumbers(t),
	}
	for name, want := range map[string]string{
		"payment": "18474693682d5822d0db4f6de313a59bed7d7e0e276f7735b866df7f836158cb",
		"webhook": "32ff20bcff1d1ff1e85fbf3afba4d51ad1b81289f32d016a03e6a5a8c26687e5",
		"values":  "00254dd502e61645d5eaffe7965dc8a68b2823b9133e4505776fa1472391c2a2",
		"numbers": "a8fc30a83da6fddf66daa146f1e6ee63b72e992abebdd6b26b96d367f33bba15",
	} {
		if sums[name] != want {
			t.Errorf("%s: %s, want %s", name, sums[name], want)
		}
	}
}

func sumOfValues(t *testing.T) string {
	values, spelling := rand.New(rand.NewPCG(11, 12)), rand.New(rand.NewPCG(13, 14))
	all := sha256.New()
	for range 500 {
		d, err := Parse(spelled(spelling, value(values, 4)))
		if err != nil {
			t.Fatal(err)
		}
		d.Root().WriteCanonical(all)
	}
	return fmt.Sprintf("%x", all.Sum(nil))
}

func sumOfNumbers(t *testing.T) string {
	r := rand.New(rand.NewPCG(15, 16))
	all := sha256.New()
	for range 20_000 {
		number := fmt.Sprintf("%d.%0*de%d", r.Int64N(2000)-1000, 1+r.IntN(25), r.Int64N(1000), r.IntN(60)-30)
		if r.IntN(2) == 0 {
			number = fmt.Sprint(r.Int64() >> r.IntN(64) * (1 - 2*r.Int64N(2)))
		}
		d, err := Parse([]byte(number))
		if err != nil {
			t.Fatal(err)
		}
		d.Root().WriteCanonical(all)
	}
	return fmt.Sprintf("%x", all.Sum(nil))
}
