import type { Requirement } from '../requirements.js';

export const sampleNotes = {
  'sample-notes:put': { source: 'House', behavior: 'Writing a sample note a second time replaces its text.' },
  'sample-notes:put:invalid': { source: 'House', behavior: 'A sample note with a wrong name or no text is refused.' },
  'sample-notes:list': { source: 'House', behavior: 'The sample notes of a namespace are listed by name, in pages.' },
  'sample-notes:delete': { source: 'House', behavior: 'A deleted sample note is gone.' },
  'sample-notes:key': { source: 'House', behavior: 'Every request for sample notes needs an API key.' },
  'sample-notes:owner': {
    source: 'House',
    behavior: 'Nobody but the owner of a namespace can tell its sample notes from none.',
  },
} as const satisfies Record<string, Requirement>;
