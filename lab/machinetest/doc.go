// Package machinetest proves the journeys of the README on real machines: each
// test is a script of what a person types, and looks at what a person would
// see. It has no code but tests, which are built with the tag "machine"; where
// no machines can be had they skip and say why.
//
// The release under test is made once, from this source, with throwaway keys.
package machinetest
