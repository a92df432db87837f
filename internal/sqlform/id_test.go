package sqlform

import (
	"bytes"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

func TestStoredIDsAreShortAndReversible(t *testing.T) {
	uuid := "0190a5e2-7d0b-7c3e-8f00-0123456789ab"
	packed, _ := ID([]byte(uuid))
	hashed, _ := ID([]byte(strings.Repeat("x", 513)))
	ids := []string{
		"a", "\x00", "\xff", uuid, strings.ToUpper(uuid), string(packed), string(packed[1:]), string(hashed), string(hashed[1:]),
		strings.ReplaceAll(uuid, "-", ""), "0190a5e2-7d0b-7c3e-8f00-0123456789zz", "0190a5e2_7d0b_7c3e_8f00_0123456789ab",
		strings.Repeat("x", 512), strings.Repeat("x", 513), strings.Repeat("x", semel.MaxID),
	}
	seen := map[string]string{}
	for _, id := range ids {
		key, long := ID([]byte(id))
		if other, ok := seen[string(key)]; ok {
			t.Errorf("%.40q and %.40q are stored alike", id, other)
		}
		seen[string(key)] = id
		if len(key) > longestID+1 {
			t.Errorf("%.40q takes %d bytes", id, len(key))
		}
		if got, ok := OriginalID(key, long); !ok || got != id {
			t.Errorf("%.40q comes back as %.40q", id, got)
		}
	}
	if len(packed) != 17 || len(hashed) != 33 {
		t.Errorf("a UUID takes %d bytes and a hash %d", len(packed), len(hashed))
	}
}

func TestLongIDsAreShortened(t *testing.T) {
	t.Run("trap_84_to_a_hash_of_at_least_128_bits_with_the_original_beside_it", func(t *testing.T) {
		seen := map[string]int{}
		for n := longestID + 1; n <= semel.MaxID; n++ {
			id := bytes.Repeat([]byte("x"), n)
			key, long := ID(id)
			if bits := 8 * (len(key) - 1); bits < 128 || !bytes.Equal(long, id) {
				t.Fatalf("an id of %d bytes is stored by %d bits, and %d bytes beside them", n, bits, len(long))
			}
			// Each half of the hash differs for different ids; no half is constant.
			for _, half := range [][]byte{key[1:17], key[17:]} {
				if other, there := seen[string(half)]; there {
					t.Fatalf("ids of %d and %d bytes share half of a hash", other, n)
				}
				seen[string(half)] = n
			}
		}
	})
}

func FuzzStoredIDsComeBack(f *testing.F) {
	for _, seed := range []string{"", "a", "0190a5e2-7d0b-7c3e-8f00-0123456789ab", strings.Repeat("é", 300)} {
		f.Add([]byte(seed), []byte("b"))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		ka, la := ID(a)
		kb, _ := ID(b)
		if bytes.Equal(ka, kb) != bytes.Equal(a, b) {
			t.Errorf("%q and %q are stored as %q and %q", a, b, ka, kb)
		}
		if got, ok := OriginalID(ka, la); !ok || got != string(a) {
			t.Errorf("%q comes back as %q", a, got)
		}
	})
}

func TestDamagedStoredIDsAreDetected(t *testing.T) {
	for _, key := range [][]byte{nil, {9, 1}, {idUUID, 1}, bytes.Repeat([]byte{idHashed}, 33)} {
		if id, ok := OriginalID(key, nil); ok {
			t.Errorf("%q is read as %q", key, id)
		}
	}
}

func FuzzMessagesComeBack(f *testing.F) {
	f.Add("topic", "name", []byte("value"), "id", true)
	f.Add("\xff\x00", "{}", []byte(nil), "\u2028<&>", false)
	f.Fuzz(func(t *testing.T, topic, name string, value []byte, id string, present bool) {
		m := &semel.Message{Topic: topic, Headers: semel.Headers{{Name: name, Value: value}, {Name: id}}}
		if present {
			m.Attributes.ID, m.Attributes.Subject = id, name
			m.Origin.Written = uint32(len(id)) << 20
		}
		data, err := Sealed(m)
		if err != nil {
			t.Fatal(err)
		}
		var got semel.Message
		if err := Unseal(data, &got); err != nil {
			t.Fatal(err)
		}
		h := got.Headers[0]
		if got.Topic != topic || h.Name != name || !bytes.Equal(h.Value, value) || (h.Value == nil) != (value == nil) ||
			got.Headers[1].Value != nil || got.Attributes != m.Attributes || got.Origin.Written != m.Origin.Written {
			t.Errorf("%+v comes back as %+v", m, got)
		}
	})
}
