import { DataSource } from 'typeorm';
import { loadEnv } from '../../config/env.js';
import { dataSourceOptions, entityFiles } from './data-source-options.js';

/** `DATABASE_URL` must be set for TypeORM's command line. */
const env = loadEnv();
export default new DataSource({ ...dataSourceOptions(env.databaseUrl ?? '', 2), entities: entityFiles });
