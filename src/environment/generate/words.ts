/** Words that names are made of: short, distinct, none of them used in any sentence of the templates. */
export const NAME_WORDS: readonly string[] = (
  'amber arrow aspen badger basil beacon birch bison bramble breeze bronze cabin canyon cedar cherry cinder citrus ' +
  'clover cobalt comet copper coral cotton crane crystal cypress dahlia dapple denim dune eagle ebony ember falcon ' +
  'fennel fern finch flint forest fox garnet ginger glacier granite grove harbor hazel heron hickory holly indigo ' +
  'iris ivory jasper juniper kestrel lagoon larch laurel lemon lilac linen lotus lynx maple marble meadow mint ' +
  'mocha moss nectar nickel north nutmeg oak ocean olive onyx opal orchid otter pearl pebble pepper pine plum ' +
  'poplar quartz raven reef river robin rose saffron sage silver slate sparrow spruce stone sunset tango thistle ' +
  'tiger topaz tulip velvet violet walnut willow winter yarrow zephyr'
).split(' ');
