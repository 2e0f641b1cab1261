package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
)

// bodyOf is the body of message i of a mark.
func bodyOf(mark string, i int) []byte {
	body := []byte(fmt.Sprintf("%s%d-", mark, i))
	for k := range (i * 7) % 90 {
		body = append(body, byte((i+k)%256))
	}
	return body
}

// bodyOfSize is the body of n bytes that the scenario "large" sends.
func bodyOfSize(n int) []byte {
	body := make([]byte, n)
	for k := range body {
		body[k] = byte((n + k) % 256)
	}
	return body
}

// numberOf tells which message a body is; an error if it is not, byte for byte, one of that mark.
func numberOf(mark string, body []byte) (int, error) {
	head, _, found := bytes.Cut(body, []byte("-"))
	digits, marked := bytes.CutPrefix(head, []byte(mark))
	i, err := strconv.Atoi(string(digits))
	if !found || !marked || err != nil || !bytes.Equal(body, bodyOf(mark, i)) {
		return 0, fmt.Errorf("not a message of mark %s: %x", mark, body)
	}
	return i, nil
}

// summaryOf is a count and one hash over all bodies in order of arrival.
func summaryOf(arrived []delivery) map[string]any {
	hash := sha256.New()
	for _, each := range arrived {
		_ = binary.Write(hash, binary.BigEndian, uint32(len(each.body)))
		hash.Write(each.body)
	}
	return map[string]any{"count": len(arrived), "sha256": hex.EncodeToString(hash.Sum(nil))}
}

// numbersOf tells the numbers of messages of mark m, in order of arrival.
func numbersOf(arrived []delivery) ([]int, error) {
	numbers := []int{}
	for _, each := range arrived {
		i, err := numberOf("m", each.body)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, i)
	}
	return numbers, nil
}

func offsetsOf(arrived []delivery) []int64 {
	offsets := []int64{}
	for _, each := range arrived {
		offsets = append(offsets, each.offset)
	}
	return offsets
}
