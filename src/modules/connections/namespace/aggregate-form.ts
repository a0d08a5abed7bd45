import { separators } from '../../../mcp/aggregate/member-names.js';
import type { AggregateForm } from '../../../mcp/aggregate/aggregate-channel.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';

/** How a namespace shows itself at this URL. @throws InvalidInputError */
export function formOf(url: string): AggregateForm {
  const mark = url.indexOf('?');
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
  const given = query.get('separator') ?? '.';
  const separator = separators.find((one) => one === given);
  if (separator === undefined) throw new InvalidInputError(`separator must be one of: ${separators.join(' ')}`);
  const mode = query.get('mode') ?? 'all';
  if (mode !== 'all' && mode !== 'search') throw new InvalidInputError('mode must be all or search');
  return { separator, isSearched: mode === 'search' };
}
