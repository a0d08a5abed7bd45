import { z } from 'zod';

/** The settings of the official registry. The module is not loaded if the value is `off`. */
export const officialRegistrySettings = z.object({
  /** URL in front of `/v0.1/servers`. */
  OFFICIAL_REGISTRY_URL: z
    .string()
    .default('https://registry.modelcontextprotocol.io')
    .refine(isBase, 'expected "off" or a URL without user name, "?" and "#"')
    .transform((url) => url.replace(/\/+$/, '')),
});

export type OfficialRegistrySettings = z.infer<typeof officialRegistrySettings>;

function isBase(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === '' && !/[?#]/.test(text);
}
