// Package selectors finds values in messages: a header, a value in a JSON body, an attribute.
//
// A Selector has a text, such as "header:message-id" or "body:/order/id"; see Parse.
package selectors
