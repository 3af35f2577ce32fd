// Package recipes is the bundle recipes of the project itself, as data in the
// tree: what "mesh-release build" makes beside the floor tarball. It promises
// only where they are; what they hold is read like anybody's recipe.
package recipes

// FirstNode is the recipe of the first node's bundle, from the top of the
// source tree.
const FirstNode = "release/recipes/first-node/bundle.toml"
