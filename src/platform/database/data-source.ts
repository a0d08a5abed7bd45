import { DataSource } from 'typeorm';
import { loadEnv } from '../../config/env.js';
import { dataSourceOptions, entityFiles } from './data-source-options.js';

/** Data source of TypeORM's command line. `DATABASE_URL` must be set. */
const env = loadEnv();
export default new DataSource({ ...dataSourceOptions(env.databaseUrl ?? '', 2), entities: entityFiles });
