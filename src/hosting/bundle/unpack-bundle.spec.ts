import { describe, expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { commandFor } from './unpack-bundle.js';

describe('the command of a session', () => {
  verifies('bundle:run', 'takes the value of the caller, else the secret of that name, else the default', () => {
    const manifest = {
      command: 'node',
      args: ['${user_config.region}'],
      env: { REGION: '${user_config.region}' },
      userConfig: { region: { type: 'string', default: 'by default' } },
    };
    const region = (query: string, secrets: Record<string, string>) => {
      const { args, env } = commandFor(manifest, '/bundle', new URLSearchParams(query), secrets);
      expect(env.REGION).toBe(args[0]);
      return args[0];
    };
    const secrets = { region: 'of the secret' };
    expect(region('region=of+the+caller', secrets)).toBe('of the caller');
    expect(region('region=', secrets)).toBe('of the secret');
    expect(region('', {})).toBe('by default');
  });
});
