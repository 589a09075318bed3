// Re-exports Preact, so that only this file names its vendored version.
export { html, render, createContext, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback, useErrorBoundary } from './vendor/htm-preact-3.1.1.js';
