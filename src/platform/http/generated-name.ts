import { randomInt } from 'node:crypto';

const animals = (
  'badger beaver bison crane deer dolphin eagle falcon ferret finch fox gecko gull hare heron ibex jackal koala lark ' +
  'lemur lynx marten mole moose narwhal newt ocelot okapi orca osprey otter owl panda pika puffin quail rabbit raven ' +
  'robin seal shrew skink sloth squid stoat stork swift tapir tern toad turtle vole walrus weasel wolf wombat wren yak'
).split(' ');

/** Characters without vowels and look-alikes, to avoid words and misreadings. */
const letters = '23456789bcdfghjkmnpqrstvwxz';

export function generateTail(length: number): string {
  return Array.from({ length }, () => letters[randomInt(letters.length)]).join('');
}

/** Returns a readable name such as `heron-x7k2`. Not a secret, and not unique by itself: retry on a collision. */
export function generateName(tailLength: number): string {
  return `${animals[randomInt(animals.length)]}-${generateTail(tailLength)}`;
}
