package why

import "errors"

// LacksRight reports whether err means that the role lacks a privilege. The remaining records are shown in
// that case.
func LacksRight(err error) bool {
	var of interface{ SQLState() string }
	return errors.As(err, &of) && of.SQLState() == "42501"
}

// note adds what to the records that could not be read if err is a missing privilege. note returns other
// errors.
func note(unread *[]string, what string, err error) error {
	if err == nil || !LacksRight(err) {
		return err
	}
	*unread = append(*unread, what+": "+err.Error())
	return nil
}
