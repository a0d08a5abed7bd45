import type { Requirement } from '../requirements.js';

/** Rules of modules that other teams add. */
export const extension = {
  'extension:card': {
    source: 'House',
    behavior: 'A module adds a documented member to the cards of servers, read with one call for a page of them.',
  },
  'extension:module:loaded': {
    source: 'House',
    behavior:
      'A package named in SLIPWAY_MODULES serves its routes, documents them and migrates its tables after ours.',
    isLong: true,
  },
  'extension:module:one-copy': {
    source: 'House',
    behavior: 'A module outside the tree that would load its own copy of a shared package stops the start.',
  },
  'extension:module:explained': {
    source: 'House',
    behavior: 'A module outside the tree that cannot be loaded stops the start with its folder and the reason.',
  },
  'extension:module:declared': {
    source: 'House',
    behavior: 'A route of a module outside the tree that declares no access stops the start.',
    isLong: true,
  },
  'extension:generated': {
    source: 'House',
    behavior: 'A module written by `npm run new:module` builds, and its test passes as it is written.',
    isLong: true,
  },
} as const satisfies Record<string, Requirement>;
