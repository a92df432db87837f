package encryption

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// keyOf returns a key for tests.
func keyOf(b byte) []byte { return bytes.Repeat([]byte{b}, KeySize) }

func mustNew(t *testing.T, keys ...[]byte) *Cipher {
	t.Helper()
	c, err := New(keys[0], keys[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encrypted(t *testing.T, c *Cipher, plain, about string) []byte {
	t.Helper()
	text, err := c.Encrypt([]byte(plain), []byte(about))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestATextIsDecryptedOnlyWithItsKey(t *testing.T) {
	c := mustNew(t, keyOf(1))
	t.Run("P4_any_bytes_come_back", func(t *testing.T) {
		for _, plain := range []string{"", "a", "a\x00\xff", strings.Repeat("long", 100_000)} {
			text := encrypted(t, c, plain, "about")
			if len(text) != len(plain)+c.Overhead() || len(plain) > 1 && bytes.Contains(text, []byte(plain)) {
				t.Errorf("the text has %d bytes, the plaintext %d", len(text), len(plain))
			}
			if got, err := c.Decrypt(text, []byte("about")); err != nil || string(got) != plain || got == nil {
				t.Errorf("%.20q: %v", got, err)
			}
		}
	})
	t.Run("P4_no_two_texts_are_alike", func(t *testing.T) {
		if bytes.Equal(encrypted(t, c, "a", "x")[1+nameSize:], encrypted(t, c, "a", "x")[1+nameSize:]) {
			t.Error("the same plaintext was encrypted to the same text twice")
		}
	})
	t.Run("P4_each_changed_byte_is_found", func(t *testing.T) {
		text := encrypted(t, c, "secret", "a")
		for i := range text {
			changed := bytes.Clone(text)
			changed[i] ^= 1
			if got, err := c.Decrypt(changed, []byte("a")); err == nil {
				t.Errorf("with byte %d changed, Decrypt returned %q", i, got)
			}
			if _, err := c.Decrypt(text[:i], []byte("a")); err == nil {
				t.Errorf("Decrypt accepted the first %d bytes", i)
			}
		}
	})
	t.Run("P4_a_text_of_something_else_is_refused", func(t *testing.T) {
		if _, err := c.Decrypt(encrypted(t, c, "secret", "a"), []byte("b")); !errors.Is(err, errChanged) {
			t.Error(err)
		}
	})
}

func TestKeysAreChanged(t *testing.T) {
	t.Run("P4_former_keys_read_and_the_current_one_writes", func(t *testing.T) {
		before, after := mustNew(t, keyOf(1)), mustNew(t, keyOf(2), keyOf(1), keyOf(1))
		if got, err := after.Decrypt(encrypted(t, before, "secret", "a"), []byte("a")); err != nil || string(got) != "secret" {
			t.Error(got, err)
		}
		var unknown *UnknownKeyError
		if _, err := before.Decrypt(encrypted(t, after, "secret", "a"), []byte("a")); !errors.As(err, &unknown) || unknown.Key != after.Current() {
			t.Error(err)
		}
	})
	t.Run("P4_a_key_of_another_length_is_refused", func(t *testing.T) {
		for _, n := range []int{0, 16, 31, 33} {
			if _, err := New(make([]byte, n)); err == nil || !strings.Contains(err.Error(), fmt.Sprint(n, " bytes")) {
				t.Errorf("%d: %v", n, err)
			}
			if _, err := New(keyOf(1), make([]byte, n)); err == nil {
				t.Errorf("a former key of %d bytes", n)
			}
		}
	})
	t.Run("law_15_no_error_has_a_key_in_it", func(t *testing.T) {
		_, err := New([]byte("hunter2"))
		if strings.Contains(err.Error(), "hunter2") {
			t.Error(err)
		}
	})
}

func BenchmarkEncrypt(b *testing.B) {
	c, _ := New(keyOf(1))
	body := make([]byte, 500)
	for b.Loop() {
		_, _ = c.Encrypt(body, body[:16])
	}
}

func ExampleNew() {
	c, _ := New(bytes.Repeat([]byte{1}, KeySize))
	text, _ := c.Encrypt([]byte("a payload"), []byte("order 7"))
	plain, err := c.Decrypt(text, []byte("order 7"))
	fmt.Printf("%s, %v\n", plain, err)
	_, err = c.Decrypt(text, []byte("order 8"))
	fmt.Println(err)
	// Output:
	// a payload, <nil>
	// encryption: the text was changed, or belongs to something else
}

func TestSecretsAreDerived(t *testing.T) {
	t.Run("P4_each_key_gives_one_secret_for_each_purpose_and_the_current_key_is_first", func(t *testing.T) {
		before, after := mustNew(t, keyOf(1)), mustNew(t, keyOf(2), keyOf(1), keyOf(1), keyOf(2))
		name, secret, there := before.Derive(0, []byte("a"))
		formerName, former, known := after.Derive(1, []byte("a"))
		if !there || !known || name != formerName || secret != former || hexName(name) != before.Current() {
			t.Errorf("%x %x %v, then %x %x %v", name, secret, there, formerName, former, known)
		}
		if name, other, _ := after.Derive(0, []byte("a")); hexName(name) != after.Current() || other == secret {
			t.Errorf("the current key gives %x under the name %x", other, name)
		}
		if _, other, _ := before.Derive(0, []byte("b")); other == secret || bytes.Contains(other[:], keyOf(1)[:8]) {
			t.Error("two purposes have the same secret, or the secret contains the key")
		}
	})
	t.Run("P4_there_are_as_many_as_keys", func(t *testing.T) {
		c := mustNew(t, keyOf(2), keyOf(1), keyOf(1), keyOf(2))
		for n, want := range map[int]bool{-1: false, 0: true, 1: true, 2: false} {
			if _, _, there := c.Derive(n, nil); there != want {
				t.Errorf("key %d: %v", n, there)
			}
		}
	})
}

func hexName(n [nameSize]byte) string { return fmt.Sprintf("%x", n[:]) }
