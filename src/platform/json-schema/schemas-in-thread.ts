import { validatorFor } from './schema-check.js';

// Imported by jobs of the thread: before a job starts, so that its time is that of the tenant's schema alone.
validatorFor('2020-12');
validatorFor('draft-07');
