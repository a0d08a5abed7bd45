import type { Requirement } from '../requirements.js';

export const sampleNotes = {
  'sample-notes:put': {
    source: 'House',
    behavior: 'Every account puts at most one sample note on a server, and removes only its own.',
  },
  'sample-notes:card': { source: 'House', behavior: 'The card of a server counts its sample notes.' },
  'sample-notes:read': {
    source: 'House',
    behavior: 'Without a key the sample notes of a server are counted while PUBLIC_READS is on, and never changed.',
  },
  'sample-notes:deleted': { source: 'House', behavior: 'The sample notes of a server go with it.' },
} as const satisfies Record<string, Requirement>;
