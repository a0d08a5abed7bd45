import type { Requirement } from '../requirements.js';

/** How other teams extend the service. */
export const extension = {
  'extension:card': {
    source: 'House',
    behavior: 'A module adds a documented member to the cards of servers, read with one call for a page of them.',
  },
} as const satisfies Record<string, Requirement>;
