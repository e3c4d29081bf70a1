import { describe } from 'vitest';
import { hostileCases } from '../fixtures.ts';
import { testCases } from './read-hostile.ts';

describe('events that make good tools fail', () => {
  testCases(hostileCases('dataset').filter((item) => item.file.startsWith('events/')));
});
