import { expect, it } from '@jest/globals';
import { loadEnv } from '../../config/env.js';
import { examineSettingNames } from './setting-names.js';

it('names variables that differ from a setting in one or two letters, and no others', async () => {
  const set = [
    'HOME',
    'PATH',
    'POD_IP',
    'HTTPS_PROXY',
    'PORT',
    'DATABASE_URL_FILE',
    'DATABSE_URL',
    'LOG_RETENTION_DAY',
    'PRT',
  ];
  const { faults } = await examineSettingNames(loadEnv({}), {
    ...Object.fromEntries(set.map((name) => [name, 'x'])),
    REDIS_ULR: ' ',
  });
  const said = (given: string, meant: string) => ({
    text: `${given} is not a setting and changes nothing: use ${meant}, or remove it.`,
    isFatal: false,
  });
  expect(faults).toEqual([
    said('DATABSE_URL', 'DATABASE_URL'),
    said('LOG_RETENTION_DAY', 'LOG_RETENTION_DAYS'),
    said('PRT', 'PORT'),
  ]);
});
